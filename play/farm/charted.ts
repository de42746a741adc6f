// What the bundle begins only where it is looked at: pages with charts.

export { ComparePage } from "./compare";
export { JobPage } from "./job";
