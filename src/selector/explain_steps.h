#pragma once

#include <vector>

#include "selector/explain.h"
#include "selector/request.h"

namespace cubist::selector {

/// The sentences of an explanation, apart from how it is found.
std::vector<ExplainStep> describe_request(const Request& request);
void describe_pass(const Request& request, const PassNote& pass, std::size_t number,
                   std::vector<ExplainStep>& steps);
/// How cluster occupancy decided, and what stands behind the first plan.
void describe_selection(const Request& request, const DeviceProfile& device,
                        const Selection& selection, std::vector<ExplainStep>& steps);

}  // namespace cubist::selector
