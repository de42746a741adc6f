// The live network's page: its state, the simulation that follows it, and the parts that show both.

import { render } from "preact";
import { useEffect, useMemo, useReducer } from "preact/hooks";
import { keepInAddress, linked } from "./address";
import { actionOf } from "./files";
import { theme, useDark } from "./look";
import { LinkForm, TrafficForm } from "./network-form";
import { type PartProps, READING_FRAMES, useFrames } from "./part";
import { PRESETS, presetSetup } from "./presets";
import { Rules } from "./rules";
import { Comparison, SenderList } from "./senders";
import { Simulation } from "./simulation";
import { initialState, Store } from "./state";
import { TimeCharts } from "./time-charts";
import { Toolbar } from "./toolbar";
import { SenderNumbers, TradeOffChart } from "./trade-off-chart";

const store = new Store(initialState(presetSetup(Object.values(PRESETS)[0][0], {})));
const simulation = new Simulation(store, linked);
keepInAddress(store);

function Page() {
  const dark = useDark();
  const look = useMemo(() => theme(dark), [dark]);
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => store.follow(() => redraw(undefined)), []);
  // Figures follow the samples.
  useFrames(READING_FRAMES, () => redraw(undefined));
  const { state, dispatch } = store;
  const props: PartProps = { state, dispatch, simulation, look };
  return (
    <div
      class="page"
      onDragOver={(event) => event.preventDefault()}
      onDrop={async (event) => {
        event.preventDefault();
        const file = event.dataTransfer?.files[0];
        if (file) dispatch(await actionOf(file));
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
