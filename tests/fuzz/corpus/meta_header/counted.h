struct A { int x = 1; const char* s; };
extern const A e[];
A t[2] = { {1, "a"}, {true, "b"} };
struct B { int f() { return 1; } };
