struct A { int x; };
A t[] = {{1},