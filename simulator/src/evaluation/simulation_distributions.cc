#include "evaluation/composition.h"

namespace remy {

REMY_INSTANTIATE_RUN_RULES(AbsoluteController, DistributionRecorder);
REMY_INSTANTIATE_RUN_RULES(BasicController, DistributionRecorder);
REMY_INSTANTIATE_RUN_RULES(PathController, DistributionRecorder);
REMY_INSTANTIATE_RUN_RULES(AnyController, DistributionRecorder);

}  // namespace remy
