#include "evaluation/composition.h"

namespace remy {

REMY_INSTANTIATE_RUN_RULES(AnyController, NoObserver);
REMY_INSTANTIATE_RUN_RULES(AnyController, UseCounter);
REMY_INSTANTIATE_RUN_RULES(AnyController, MemoryRecorder);

}  // namespace remy
