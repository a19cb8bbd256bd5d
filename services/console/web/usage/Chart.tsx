/** A chart over days, and its values as a table. */
import { SegmentedControl, Text } from "@mantine/core"
import { useState } from "react"
import { shortDay } from "../data/Format.ts"
import { type Column, DataTable } from "../parts/DataTable.tsx"
import { Card } from "../parts/Page.tsx"
import { Plot } from "./Plot.tsx"
import type { Point } from "./Series.ts"

export interface ChartProps {
  readonly title: string
  readonly kind: "bars" | "lines"
  readonly points: ReadonlyArray<Point>
  readonly series: ReadonlyArray<string>
  readonly labelOf: (series: string) => string
  readonly colorOf: (series: string) => string
  readonly format: (value: number) => string
}

const Values = ({ format, labelOf, points, series, title }: ChartProps) => (
  <DataTable
    rows={points.toReversed()}
    keyOf={({ day }) => day}
    columns={[
      { head: "Day", cell: ({ day }) => shortDay(day) },
      ...series.map((name): Column<Point> => ({
        head: labelOf(name),
        isNumeric: true,
        props: { ta: "right" },
        cell: ({ values }) => {
          const value = values[name] ?? null
          return value === null ? "–" : format(value)
        }
      }))
    ]}
    minWidth={120 + series.length * 120}
    maxHeight={280}
    verticalSpacing={6}
    stickyHeader
    aria-label={title}
  />
)

export const Chart = (props: ChartProps) => {
  const { series, title } = props
  const [shown, show] = useState("chart")
  return (
    <Card
      title={title}
      aside={
        <SegmentedControl
          size="xs"
          aria-label={`${title}: chart or table`}
          value={shown}
          onChange={show}
          data={[{ value: "chart", label: "Chart" }, { value: "table", label: "Table" }]}
        />
      }
    >
      {series.length === 0
        ? <Text c="dimmed" size="sm" ta="center" py={88}>No data in this period</Text>
        : shown === "table"
        ? <Values {...props} />
        : <Plot {...props} />}
    </Card>
  )
}
