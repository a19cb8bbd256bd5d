/** Draws the rounds of a benchmark as SVG: throughput relative to the floor, and CPU time per answer by process. */
import { BarChart, type BarSeriesOption } from "echarts/charts"
import { GridComponent, LegendComponent, TitleComponent } from "echarts/components"
import { init, use } from "echarts/core"
import { SVGRenderer } from "echarts/renderers"
import { line, text, withDark } from "../Ink.ts"
import type { Round } from "../Load.ts"
import { median } from "../Median.ts"
import { roundsOf } from "./Report.ts"
import type { Row, StackName } from "../Rows.ts"
import { stackNames } from "../Rows.ts"

use([BarChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer])

const stackColours: Readonly<Record<StackName, string>> = {
  floor: "#8b949e",
  gateway: "#2f81f7",
  unlimited: "#1f6feb",
  sampled: "#b392f0",
  untraced: "#79b8ff",
  portkey: "#db6d28",
  litellm: "#f0883e"
}
const roleColours = { ingress: "#2f81f7", worker: "#3fb950", nats: "#a371f7" } as const

const width = 960
const left = 235
const barHeight = 16

interface Panel {
  readonly title: string
  readonly unit: string
  /** The categories from top to bottom. */
  readonly categories: ReadonlyArray<string>
  readonly series: ReadonlyArray<BarSeriesOption>
  readonly height: number
}

const values = (numbers: ReadonlyArray<number | undefined>) => numbers.map((value) => value ?? "-")

const throughput = (
  rows: ReadonlyArray<Row>,
  rounds: ReadonlyArray<Round>,
  stacks: ReadonlyArray<StackName>
): Panel => {
  const rate = (row: string, stack: StackName) => median(roundsOf(rounds, row, stack).map((round) => round.rate))
  return {
    title: "Answers per second, beside the floor's",
    unit: "{value} %",
    categories: rows.map(({ name }) => name),
    series: stacks.map((stack) => ({
      name: stack,
      type: "bar",
      color: stackColours[stack],
      label: { show: true, position: "right", color: text.light, fontSize: 10, formatter: "{c} %" },
      data: values(rows.map(({ name }) => {
        const share = Math.round(100 * rate(name, stack) / rate(name, "floor"))
        return Number.isFinite(share) ? share : undefined
      }))
    })),
    height: rows.length * (stacks.length + 1) * barHeight
  }
}

const cpu = (rows: ReadonlyArray<Row>, rounds: ReadonlyArray<Round>, stacks: ReadonlyArray<StackName>): Panel => {
  const bars = rows.flatMap(({ name }) =>
    stacks.flatMap((stack) => {
      const own = roundsOf(rounds, name, stack)
      return own.length === 0 ? [] : [{ label: `${name}, ${stack}`, own }]
    })
  )
  return {
    title: "CPU time per answer, in microseconds",
    unit: "{value} µs",
    categories: bars.map(({ label }) => label),
    series: (["ingress", "worker", "nats"] as const).map((role) => ({
      name: role,
      type: "bar",
      stack: "cpu",
      color: roleColours[role],
      data: bars.map(({ own }) => Math.round(median(own.map(({ cpuOf }) => cpuOf[role]))))
    })),
    height: bars.length * 1.6 * barHeight
  }
}

/** Whether a row belongs in the chart of CPU time. Pictures cost so much that the other bars would vanish beside theirs. */
const isSmall = ({ workload }: Row) => workload === "chat"

export const chart = (rows: ReadonlyArray<Row>, rounds: ReadonlyArray<Round>): string => {
  const stacks = stackNames.filter((name) => rounds.some(({ stack }) => stack === name))
  const panels = [throughput(rows, rounds, stacks), cpu(rows.filter(isSmall), rounds, stacks)]
  const head = 70
  const tops = panels.map((_, index) =>
    panels.slice(0, index).reduce((top, { height }) => top + height + head + 30, head)
  )
  const height = tops.at(-1)! + panels.at(-1)!.height + 40
  const drawing = init(null, null, { renderer: "svg", ssr: true, width, height })
  drawing.setOption({
    animation: false,
    textStyle: { color: text.light },
    title: panels.map(({ title }, index) => ({
      text: title,
      left: 10,
      top: tops[index]! - 60,
      textStyle: { color: text.light, fontSize: 15 }
    })),
    legend: panels.map(({ series }, index) => ({
      data: series.map(({ name }) => String(name)),
      left: 10,
      top: tops[index]! - 36,
      textStyle: { color: text.light }
    })),
    grid: panels.map(({ height }, index) => ({ left, right: 50, top: tops[index], height })),
    xAxis: panels.map(({ unit }, gridIndex) => ({
      type: "value",
      gridIndex,
      axisLabel: { formatter: unit, color: text.light },
      splitLine: { lineStyle: { color: line.light } }
    })),
    yAxis: panels.map(({ categories }, gridIndex) => ({
      type: "category",
      gridIndex,
      inverse: true,
      data: [...categories],
      axisLabel: { color: text.light, fontSize: 11 },
      axisLine: { lineStyle: { color: line.light } },
      axisTick: { show: false }
    })),
    series: panels.flatMap(({ series }, index) =>
      series.map((one) => ({ ...one, xAxisIndex: index, yAxisIndex: index, barMaxWidth: barHeight }))
    )
  })
  const svg = drawing.renderToSVGString()
  drawing.dispose()
  return withDark(svg)
}
