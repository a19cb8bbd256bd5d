/** Bars or lines over days: Chart.js draws them, and the legend and the tooltip belong to the page. */
import { Box, Group, Paper, Text, useComputedColorScheme } from "@mantine/core"
import {
  BarController,
  BarElement,
  CategoryScale,
  Chart,
  LinearScale,
  LineController,
  LineElement,
  PointElement,
  Tooltip
} from "chart.js"
import { useEffect, useRef, useState } from "react"
import { shortDay } from "../data/Format.ts"
import type { ChartProps } from "./Chart.tsx"
import type { Point } from "./Series.ts"

Chart.register(
  BarController,
  BarElement,
  CategoryScale,
  LinearScale,
  LineController,
  LineElement,
  PointElement,
  Tooltip
)

/** The CSS variable of a colour such as `iris.5`. */
const variableOf = (color: string) => `--mantine-color-${color.replace(".", "-")}`

const Swatch = ({ color }: { readonly color: string }) => (
  <Box component="span" className="dot" bg={`var(${variableOf(color)})`} />
)

/** The day under the pointer. */
interface Hovered {
  readonly index: number
  /** The middle of the day, in pixels from the left. */
  readonly x: number
}

const Values = ({ at, point, props }: {
  readonly at: Hovered
  readonly point: Point
  readonly props: ChartProps
}) => {
  const { colorOf, format, labelOf, points, series } = props
  const move = at.index * 2 < points.length ? "translateX(14px)" : "translateX(calc(-100% - 14px))"
  return (
    <Paper
      className="plot-values"
      role="tooltip"
      withBorder
      shadow="md"
      px="sm"
      py="xs"
      style={{ left: at.x, transform: move }}
    >
      <Text size="sm" fw={550} mb={4}>{shortDay(point.day)}</Text>
      {series.map((name) => {
        const value = point.values[name] ?? null
        return (
          <Group key={name} gap="xs" wrap="nowrap">
            <Swatch color={colorOf(name)} />
            <Text size="xs" c="dimmed" flex={1}>{labelOf(name)}</Text>
            <Text size="xs" className="numeric">{value === null ? "–" : format(value)}</Text>
          </Group>
        )
      })}
    </Paper>
  )
}

/** A few days are drawn with dots, because a single day has no line. */
const daysWithValues = (points: ReadonlyArray<Point>): number =>
  points.filter(({ values }) => Object.values(values).some((value) => value !== null)).length

/** The drawing, in the colours that apply when it is made; its parent makes a new one for another colour scheme. */
const Drawing = ({ hover, props }: {
  readonly hover: (hovered: Hovered | null) => void
  readonly props: ChartProps
}) => {
  const { colorOf, format, kind, points, series, title } = props
  const canvas = useRef<HTMLCanvasElement>(null)
  // `colorOf` is a new function on each render: only other colours are a reason to draw again
  const colors = series.map(colorOf).join()

  useEffect(() => {
    if (canvas.current === null) return
    const style = getComputedStyle(canvas.current)
    const ticks = {
      color: style.getPropertyValue("--mantine-color-dimmed"),
      font: { family: style.fontFamily, size: 12 }
    }
    const chart = new Chart<"bar" | "line", Array<number | null>, string>(canvas.current, {
      type: kind === "bars" ? "bar" : "line",
      data: {
        labels: points.map(({ day }) => shortDay(day)),
        datasets: series.map((name, index) => {
          const color = style.getPropertyValue(variableOf(colors.split(",")[index] ?? ""))
          return {
            data: points.map(({ values }) => values[name] ?? null),
            backgroundColor: color,
            borderColor: color,
            hoverBackgroundColor: color
          }
        })
      },
      options: {
        animation: false,
        maintainAspectRatio: false,
        interaction: { mode: "index", intersect: false },
        datasets: {
          bar: { maxBarThickness: 28 },
          line: {
            borderWidth: 2,
            cubicInterpolationMode: "monotone",
            pointRadius: daysWithValues(points) < 15 ? 4 : 0,
            spanGaps: true
          }
        },
        scales: {
          x: {
            stacked: kind === "bars",
            grid: { display: false },
            border: { display: false },
            ticks: { ...ticks, autoSkipPadding: 28, maxRotation: 0 }
          },
          y: {
            stacked: kind === "bars",
            beginAtZero: true,
            grid: { color: style.getPropertyValue("--console-line") },
            border: { display: false, dash: [5, 5] },
            ticks: { ...ticks, callback: (value) => format(Number(value)), maxTicksLimit: 6, padding: 8 }
          }
        },
        plugins: {
          tooltip: {
            enabled: false,
            external: ({ tooltip: { caretX: x, dataPoints, opacity } }) => {
              const index = dataPoints?.[0]?.dataIndex
              hover(opacity === 0 || index === undefined ? null : { index, x })
            }
          }
        }
      }
    })
    return () => chart.destroy()
  }, [kind, points, series, colors, format, hover])

  return <canvas ref={canvas} role="img" aria-label={`${title} by day`} />
}

export const Plot = (props: ChartProps) => {
  const { colorOf, labelOf, points, series } = props
  const scheme = useComputedColorScheme()
  const [hovered, hover] = useState<Hovered | null>(null)
  const point = hovered === null ? undefined : points[hovered.index]
  return (
    <>
      <Box pos="relative" h={series.length > 1 ? 216 : 250} miw={0}>
        <Drawing key={scheme} hover={hover} props={props} />
        {hovered !== null && point !== undefined && <Values at={hovered} point={point} props={props} />}
      </Box>
      {series.length > 1 && (
        <Group justify="center" gap="md" mt="sm">
          {series.map((name) => (
            <Group key={name} gap={6} wrap="nowrap">
              <Swatch color={colorOf(name)} />
              <Text size="sm">{labelOf(name)}</Text>
            </Group>
          ))}
        </Group>
      )}
    </>
  )
}
