#include "evaluation/composition.h"

namespace remy {

REMY_INSTANTIATE_RUN_RULES(RemyController<false>, NoObserver);
REMY_INSTANTIATE_RUN_RULES(RemyController<false>, UseCounter);
REMY_INSTANTIATE_RUN_RULES(RemyController<false>, MemoryRecorder);

}  // namespace remy
