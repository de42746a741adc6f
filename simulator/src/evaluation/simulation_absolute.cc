#include "evaluation/composition.h"

namespace remy {

REMY_INSTANTIATE_RUN_RULES(AbsoluteController, NoObserver);
REMY_INSTANTIATE_RUN_RULES(AbsoluteController, UseCounter);
REMY_INSTANTIATE_RUN_RULES(AbsoluteController, MemoryRecorder);

}  // namespace remy
