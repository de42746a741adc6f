// Pages with charts, loaded only when one is shown.

export { ComparePage } from "./compare";
export { JobPage } from "./job";
