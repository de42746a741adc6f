#include "evaluation/composition.h"

namespace remy {

REMY_INSTANTIATE_RUN_RULES(RemyController<true>, NoObserver);
REMY_INSTANTIATE_RUN_RULES(RemyController<true>, UseCounter);
REMY_INSTANTIATE_RUN_RULES(RemyController<true>, MemoryRecorder);

}  // namespace remy
