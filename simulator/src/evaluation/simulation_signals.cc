#include "evaluation/composition.h"

namespace remy {

REMY_INSTANTIATE_RUN_RULES(SignalController, NoObserver);
REMY_INSTANTIATE_RUN_RULES(SignalController, UseCounter);
REMY_INSTANTIATE_RUN_RULES(SignalController, MemoryRecorder);

}  // namespace remy
