/** Colours of charts, for pages in light and dark. */

/** Colours of text and lines, in light and dark. Coloured bars and curves must be readable on both backgrounds. */
export const text = { light: "#24292f", dark: "#e6edf3" }
export const line = { light: "#d0d7de", dark: "#3d444d" }
const dark = `<style>@media (prefers-color-scheme: dark) { ${
  [text, line].map((ink) =>
    `[fill="${ink.light}"] { fill: ${ink.dark} } [stroke="${ink.light}"] { stroke: ${ink.dark} }`
  )
    .join(" ")
} }</style>`

/** The chart with these colours changed on dark pages. */
export const withDark = (svg: string): string => svg.replace(/(<svg[^>]*>)/, `$1${dark}`)
