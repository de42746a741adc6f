#include "senders/remy_controller.h"

namespace remy {

alignas(16) const double EwmaWeights::kNew[2] = {1.0 / 8, 1.0 / 8};
alignas(16) const double EwmaWeights::kKeep[2] = {1 - 1.0 / 8, 1 - 1.0 / 8};

}  // namespace remy
