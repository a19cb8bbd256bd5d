/** Usage: requests, tokens, cost, errors and latency over time. */
import { Box, Button, Select, SimpleGrid, Stack, Text } from "@mantine/core"
import { BarChartIcon, DownloadIcon } from "@radix-ui/react-icons"
import { DateTime } from "effect"
import { type ReactNode, useState } from "react"
import type { UsageQuery, UsageRow } from "../../../../shared/usage/UsageTable.ts"
import { count, milliseconds, money, percent, short } from "../data/Format.ts"
import { Empty, Loaded } from "../parts/Feedback.tsx"
import { Page } from "../parts/Page.tsx"
import { useCatalogue, useKeyNames, useKeys, useTeams, useUsage } from "../data/Queries.ts"
import { seriesColors } from "../parts/Theme.ts"
import { Chart } from "../usage/Chart.tsx"
import * as Series from "../usage/Series.ts"

const ranges = [
  { value: "7", label: "Last 7 days" },
  { value: "30", label: "Last 30 days" },
  { value: "90", label: "Last 90 days" },
  { value: "month", label: "This month" }
]

const divisions: ReadonlyArray<{ readonly value: Series.Division; readonly label: string }> = [
  { value: "key", label: "By key" },
  { value: "team", label: "By team" },
  { value: "model", label: "By model" },
  { value: "operation", label: "By operation" }
]

const daysOf = (range: string): { readonly from: string; readonly to: string } => {
  const now = DateTime.nowUnsafe()
  const to = DateTime.formatIsoDateUtc(now)
  if (range === "month") return { from: `${to.slice(0, 7)}-01`, to }
  return { from: DateTime.formatIsoDateUtc(DateTime.subtract(now, { days: Number(range) - 1 })), to }
}

const csvAddress = ({ by, ...query }: UsageQuery): string => {
  const parameters = new URLSearchParams(query)
  for (const dimension of [by].flat()) parameters.append("by", dimension)
  return `/api/usage.csv?${parameters.toString()}`
}

const Figure = ({ children, label }: { readonly label: string; readonly children: ReactNode }) => (
  <Box className="card" p="md">
    <Text size="sm" c="dimmed">{label}</Text>
    <Text fz={26} fw={650} lh={1.3} className="numeric">{children}</Text>
  </Box>
)

const Figures = ({ rows }: { readonly rows: ReadonlyArray<UsageRow> }) => {
  const requests = Series.total(rows, "requests")
  const latency = Series.latencyOf(rows)[Series.latencySeries[1]] ?? null
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 5 }}>
      <Figure label="Requests">{short(requests)}</Figure>
      <Figure label="Tokens">{short(Series.total(rows, "tokens"))}</Figure>
      <Figure label="Cost">{money(Series.total(rows, "cost"))}</Figure>
      <Figure label="Failed">{requests === 0 ? "–" : percent(Series.total(rows, "errors") / requests)}</Figure>
      <Figure label="Mean latency">{latency === null ? "–" : milliseconds(latency)}</Figure>
    </SimpleGrid>
  )
}

const charts: ReadonlyArray<
  { readonly measure: Series.Measure; readonly title: string; readonly format: (value: number) => string }
> = [
  { measure: "requests", title: "Requests", format: short },
  { measure: "tokens", title: "Tokens", format: short },
  { measure: "cost", title: "Cost", format: money },
  { measure: "errors", title: "Errors", format: count }
]

const Charts = ({ by, days, labelOf, rows }: {
  readonly rows: ReadonlyArray<UsageRow>
  readonly days: ReadonlyArray<string>
  readonly by: Series.Division
  readonly labelOf: (series: string) => string
}) => {
  // a series has the same colour in every chart
  const names = Series.seriesOf(rows, by, "requests")
  const colorOf = (series: string) => seriesColors[Math.max(0, names.indexOf(series)) % seriesColors.length] ?? "gray.6"
  return (
    <Stack gap="md">
      <SimpleGrid cols={{ base: 1, lg: 2 }}>
        {charts.map(({ format, measure, title }) => {
          const series = Series.seriesOf(rows, by, measure)
          return (
            <Chart
              key={measure}
              kind="bars"
              title={title}
              format={format}
              series={series}
              labelOf={labelOf}
              colorOf={colorOf}
              points={Series.pointsOf(rows, days, series, by, measure)}
            />
          )
        })}
      </SimpleGrid>
      <Chart
        kind="lines"
        title="Latency"
        format={milliseconds}
        series={rows.some((row) => row.duration.count > 0) ? Series.latencySeries : []}
        labelOf={(series) => series}
        colorOf={(series) => seriesColors[Series.latencySeries.findIndex((name) => name === series)] ?? "gray.6"}
        points={Series.latencyPoints(rows, days)}
      />
    </Stack>
  )
}

const noUsage = (
  <Box className="card">
    <Empty icon={BarChartIcon} title="No usage in this period">
      Requests are counted as they end. Send one from the playground to try it.
    </Empty>
  </Box>
)

const Usage = () => {
  const [range, setRange] = useState("30")
  const [by, setBy] = useState<Series.Division>("model")
  const [key, setKey] = useState<string | null>(null)
  const [model, setModel] = useState<string | null>(null)
  const keys = useKeys()
  const nameOf = useKeyNames()
  const teams = useTeams()
  const catalogue = useCatalogue()
  const days = daysOf(range)
  const query: UsageQuery = {
    ...days,
    by: ["day", by],
    ...(key === null ? {} : { key }),
    ...(model === null ? {} : { model })
  }
  const usage = useUsage(query)
  const labelOf = (series: string) => {
    if (by === "key") return nameOf(series)
    if (by !== "team") return series
    return series === "" ? "no team" : teams.data?.find(({ id }) => id === series)?.name ?? series
  }
  return (
    <Page
      title="Usage"
      description="Usage per day (UTC). Each request is counted within seconds of its end."
      actions={
        <Button
          component="a"
          href={csvAddress({ ...query, by: ["day", "key", "team", "model", "operation"] })}
          variant="default"
          leftSection={<DownloadIcon />}
        >
          CSV
        </Button>
      }
    >
      <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
        <Select
          aria-label="Period"
          data={ranges}
          value={range}
          onChange={(value) => value !== null && setRange(value)}
        />
        <Select
          aria-label="Grouping"
          data={divisions}
          value={by}
          onChange={(value) => value !== null && setBy(value)}
        />
        <Select
          aria-label="Key"
          placeholder="All keys"
          clearable
          searchable
          data={(keys.data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
          value={key}
          onChange={setKey}
        />
        <Select
          aria-label="Model"
          placeholder="All models"
          clearable
          searchable
          data={catalogue.data?.models.map(({ name }) => name) ?? []}
          value={model}
          onChange={setModel}
        />
      </SimpleGrid>
      <Loaded query={usage} empty={noUsage} isEmpty={(rows) => rows.every(({ requests }) => requests === 0)}>
        {(rows) => (
          <Stack gap="md">
            <Figures rows={rows} />
            <Charts rows={rows} days={Series.daysBetween(days.from, days.to)} by={by} labelOf={labelOf} />
          </Stack>
        )}
      </Loaded>
    </Page>
  )
}

export default Usage
