/** Draws the samples of a soak as SVG: a panel for each resource, a curve for each process. */
import { LineChart } from "echarts/charts"
import { GridComponent, LegendComponent, TitleComponent } from "echarts/components"
import { init, use } from "echarts/core"
import { SVGRenderer } from "echarts/renderers"
import { line, text, withDark } from "../bench/Ink.ts"
import type { Sample } from "./Sample.ts"

use([LineChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer])

const columns = 2
const panel = { width: 430, height: 150, left: 50, top: 90, gapX: 60, gapY: 80 }

const colours = [
  "#2f81f7",
  "#3fb950",
  "#db6d28",
  "#a371f7",
  "#d29922",
  "#f778ba",
  "#39c5cf",
  "#f85149",
  "#8b949e"
] as const

export const plot = (samples: ReadonlyArray<Sample>): string => {
  const first = [...samples[0]?.of ?? []]
  const processes = first.map(([name]) => name)
  const resources = [...new Set(first.flatMap(([, of]) => Object.keys(of)))]
  const left = (index: number) => panel.left + index % columns * (panel.width + panel.gapX)
  const top = (index: number) => panel.top + Math.floor(index / columns) * (panel.height + panel.gapY)
  const width = left(columns - 1) + panel.width + 30
  const height = top(resources.length - 1) + panel.height + 50
  const drawing = init(null, null, { renderer: "svg", ssr: true, width, height })
  drawing.setOption({
    animation: false,
    color: [...colours],
    textStyle: { color: text.light },
    legend: { data: processes, left: 10, top: 10, textStyle: { color: text.light } },
    title: resources.map((resource, index) => ({
      text: resource,
      left: left(index) - 10,
      top: top(index) - 34,
      textStyle: { color: text.light, fontSize: 13 }
    })),
    grid: resources.map((_, index) => ({
      left: left(index),
      top: top(index),
      width: panel.width,
      height: panel.height
    })),
    xAxis: resources.map((_, gridIndex) => ({
      type: "value",
      gridIndex,
      max: Math.ceil((samples.at(-1)?.atMs ?? 0) / 60_000),
      axisLabel: { formatter: "{value} min", color: text.light },
      splitLine: { show: false }
    })),
    yAxis: resources.map((_, gridIndex) => ({
      type: "value",
      gridIndex,
      min: 0,
      axisLabel: { color: text.light },
      splitLine: { lineStyle: { color: line.light } }
    })),
    series: resources.flatMap((resource, index) =>
      first.filter(([, of]) => resource in of).map(([name]) => ({
        name,
        type: "line",
        showSymbol: false,
        lineStyle: { width: 1.5 },
        color: colours[processes.indexOf(name) % colours.length],
        xAxisIndex: index,
        yAxisIndex: index,
        data: samples.map(({ atMs, of }) => [
          Number((atMs / 60_000).toFixed(2)),
          Number((of.get(name)?.[resource] ?? 0).toFixed(2))
        ])
      }))
    )
  })
  const svg = drawing.renderToSVGString()
  drawing.dispose()
  return withDark(svg)
}
