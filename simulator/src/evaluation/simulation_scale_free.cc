#include "evaluation/composition.h"

namespace remy {

REMY_COMPOSE(RemyController<true>, NoObserver);
REMY_COMPOSE(RemyController<true>, UseCounter);
REMY_COMPOSE(RemyController<true>, MemoryRecorder);

}  // namespace remy
