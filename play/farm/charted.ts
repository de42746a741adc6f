// What the bundle begins only where it is looked at: pages with charts, and how these look.

export { theme } from "../src/charts";
export { ComparePage } from "./compare";
export { JobPage } from "./job";
