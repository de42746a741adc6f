#include "evaluation/composition.h"

namespace remy {

REMY_INSTANTIATE_RUN_RULES(PathController, NoObserver);
REMY_INSTANTIATE_RUN_RULES(PathController, UseCounter);
REMY_INSTANTIATE_RUN_RULES(PathController, MemoryRecorder);

}  // namespace remy
