// The live network's page: its state, the simulation that follows it, and the components that show
// both.

import { render } from "preact";
import { useEffect, useMemo, useReducer } from "preact/hooks";
import { followInAddress, readAddress } from "./address";
import { readFile } from "./files";
import { paletteFor, useDark } from "./palette";
import { LinkForm, TrafficForm } from "./network-form";
import { type PageProps, READING_FRAMES, useFrames } from "./page-props";
import { PRESETS, presetSetup } from "./presets";
import { Rules } from "./rules";
import { Comparison, SenderList } from "./senders";
import { Simulation } from "./simulation";
import { initialState, Store } from "./state";
import { TimeCharts } from "./time-charts";
import { Toolbar } from "./toolbar";
import { SenderNumbers, TradeOffChart } from "./trade-off-chart";

const store = new Store(initialState(presetSetup(Object.values(PRESETS)[0][0], {})));
const simulation = new Simulation(store, readAddress);
followInAddress(store);

function Page() {
  const dark = useDark();
  const palette = useMemo(() => paletteFor(dark), [dark]);
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => store.follow(() => redraw(undefined)), []);
  // Redraws the numbers with new samples.
  useFrames(READING_FRAMES, () => redraw(undefined));
  const { state, dispatch } = store;
  const props: PageProps = { state, dispatch, simulation, palette };
  return (
    <div
      class="page"
      onDragOver={(event) => event.preventDefault()}
      onDrop={async (event) => {
        event.preventDefault();
        const file = event.dataTransfer?.files[0];
        if (file) dispatch(await readFile(file));
      }}
    >
      <Toolbar {...props} />
      <p class="notice" role="status">{state.notice}</p>
      <main>
        <section class="controls" aria-label="Network and senders">
          <LinkForm {...props} />
          <SenderList {...props} />
          <Comparison {...props} />
          <TrafficForm {...props} />
        </section>
        <TimeCharts {...props} />
        <section class="views" aria-label="Throughput, delay and rules">
          <TradeOffChart {...props} />
          <SenderNumbers {...props} />
          <Rules {...props} />
        </section>
      </main>
    </div>
  );
}

render(<Page />, document.getElementById("page")!);
