#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "trust/policy.h"

namespace cubist::trust {

/// Who but the user and root could put something else in a folder's place, or into it.
///
/// Looks at the folder, at every folder on the way to it, and at those of `inside` that are there:
/// each must belong to the user or root, and none may be written by everybody. A folder on the way
/// may have the sticky bit instead, as /tmp does. Groups are not looked at: a folder that a team
/// shares by its group is no stranger's.
///
/// folder   absolute; links on the way to it are followed, as the way to where they lead; what is
///          not there is passed over
/// inside   names of folders in it
/// returns  one sentence for each problem, outermost first: "'/srv/x' belongs to user 1001"
std::vector<std::string> folder_problems(const std::string& folder,
                                         const std::vector<std::string>& inside);

/// Deals with them as the policy says: nothing, one warning for each folder in this process, or an
/// error. Cheap where nothing is wrong: one stat a folder.
/// origin  what set the policy, as messages name it
/// errors  kUntrusted: under kRefuse
Status check_folder(const std::string& folder, const std::vector<std::string>& inside,
                    Policy policy, const std::string& origin);

}  // namespace cubist::trust
