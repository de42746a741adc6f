#include "evaluation/composition.h"

namespace remy {

REMY_INSTANTIATE_RUN_RULES(BasicController, NoObserver);
REMY_INSTANTIATE_RUN_RULES(BasicController, UseCounter);
REMY_INSTANTIATE_RUN_RULES(BasicController, MemoryRecorder);

}  // namespace remy
