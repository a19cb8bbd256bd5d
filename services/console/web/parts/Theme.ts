/** Theme of the console: type, colours and shapes, in light and dark. */
import { createTheme, type CSSVariablesResolver, type MantineColorsTuple } from "@mantine/core"

const iris: MantineColorsTuple = [
  "#eef0ff",
  "#dfe2fe",
  "#c3c8fb",
  "#a3abf7",
  "#848df2",
  "#6a72eb",
  "#565ce0",
  "#4a4fd0",
  "#3d41b0",
  "#33378f"
]

/** Cooler and more even than Mantine's greys. */
const gray: MantineColorsTuple = [
  "#f8f9fb",
  "#f1f3f6",
  "#e5e8ee",
  "#d5dae2",
  "#b6bdc9",
  "#8a93a3",
  "#667085",
  "#4b5565",
  "#343c4a",
  "#1d232e"
]

const dark: MantineColorsTuple = [
  "#e6e9ef",
  "#b4bcc9",
  "#8f98a8",
  "#5d6676",
  "#3a4250",
  "#2b323e",
  "#222832",
  "#191e27",
  "#13171f",
  "#0d1017"
]

export const theme = createTheme({
  primaryColor: "iris",
  primaryShade: { light: 7, dark: 6 },
  colors: { iris, gray, dark },
  fontFamily: "'Inter Variable', system-ui, sans-serif",
  fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
  headings: { fontWeight: "640", sizes: { h1: { fontSize: "1.55rem", lineHeight: "1.25" } } },
  defaultRadius: "md",
  cursorType: "pointer",
  focusRing: "auto",
  respectReducedMotion: true,
  components: { Modal: { defaultProps: { closeButtonProps: { "aria-label": "Close" } } } }
})

/** Secondary text has a contrast of at least 4.5 to 1 on every surface. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-body": "#ffffff",
    "--mantine-color-text": "#1d232e",
    "--mantine-color-dimmed": "#5a6476",
    "--mantine-color-placeholder": "#6b7485",
    "--mantine-color-teal-light-color": "#086350",
    "--mantine-color-orange-light-color": "#8f3d00",
    "--mantine-color-red-light-color": "#a81e22",
    "--mantine-color-cyan-light-color": "#08606f",
    "--console-canvas": "#f6f7fa",
    "--console-line": "#e5e8ee",
    "--console-surface": "#ffffff"
  },
  dark: {
    "--mantine-color-body": "#13171f",
    "--mantine-color-dimmed": "#a3acba",
    "--mantine-color-placeholder": "#8f98a8",
    "--console-canvas": "#0d1017",
    "--console-line": "#262d38",
    "--console-surface": "#13171f"
  }
})

/** Colours of chart series, in the order of use. */
export const seriesColors = [
  "iris.5",
  "teal.6",
  "orange.6",
  "pink.6",
  "cyan.6",
  "lime.7",
  "grape.5",
  "yellow.7"
] as const
