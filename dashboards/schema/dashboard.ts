// What Grafana takes for a dashboard of the kinds of panels that are used here, made of the types
// that Grafana itself is compiled with. `make dashboard-schema` makes dashboard.schema.json of it.
import type {
  Dashboard as GrafanaDashboard,
  FieldConfig,
  GraphFieldConfig,
  Panel as GrafanaPanel,
  RowPanel,
  VariableModel,
} from '@grafana/schema';
import type { Options as BarGauge } from '@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen';
import type { Options as Stat } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type {
  FieldConfig as TableField,
  Options as Table,
} from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type { Options as TimeSeries } from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
import type { Options as Trend } from '@grafana/schema/dist/esm/raw/composable/trend/panelcfg/x/TrendPanelCfg_types.gen';

interface Override<Field> {
  matcher: { id: 'byName'; options: string };
  properties: Array<{
    id: Exclude<keyof FieldConfig, 'custom'> | `custom.${Extract<keyof Field, string>}`;
    value?: unknown;
  }>;
}

type PanelOf<Type extends string, Options, Field> = Omit<
  GrafanaPanel,
  'type' | 'options' | 'fieldConfig'
> & {
  type: Type;
  options: Partial<Options>;
  fieldConfig: {
    defaults: Omit<FieldConfig, 'custom'> & { custom?: Partial<Field> };
    overrides: Array<Override<Field>>;
  };
};

// What the builders write too, and this version of Grafana no longer reads.
type OldDashboard = { style?: string };
type OldTable = { footer?: unknown };
type OldVariable = { id?: string; auto?: boolean; auto_count?: number; auto_min?: string };

type Panel =
  | PanelOf<'bargauge', BarGauge, {}>
  | PanelOf<'stat', Stat, {}>
  | PanelOf<'table', Table & OldTable, TableField>
  | PanelOf<'timeseries', TimeSeries, GraphFieldConfig>
  | PanelOf<'trend', Trend, GraphFieldConfig>;

export type Dashboard = OldDashboard &
  Omit<GrafanaDashboard, 'panels' | 'templating'> & {
    panels: Array<Panel | RowPanel>;
    templating: { list: Array<VariableModel & OldVariable> };
  };
