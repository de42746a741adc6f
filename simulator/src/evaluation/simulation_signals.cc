#include "evaluation/composition.h"

namespace remy {

REMY_COMPOSE(SignalController, NoObserver);
REMY_COMPOSE(SignalController, UseCounter);
REMY_COMPOSE(SignalController, MemoryRecorder);

}  // namespace remy
