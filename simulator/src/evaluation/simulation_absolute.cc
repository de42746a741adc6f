#include "evaluation/composition.h"

namespace remy {

REMY_COMPOSE(RemyController<false>, NoObserver);
REMY_COMPOSE(RemyController<false>, UseCounter);
REMY_COMPOSE(RemyController<false>, MemoryRecorder);

}  // namespace remy
