/** Puts faults into the code while it is loaded (`node --import`): the past fault named by MUTANT, or else all mechanical ones. */
import { registerHooks } from "node:module"
import { urlOf } from "./Files.ts"
import { mechanical, switched } from "./Mechanical.ts"
import { apply, past } from "./Past.ts"

const name = process.env["MUTANT"]
const texts = new Map(
  name === undefined
    ? mechanical.map(({ file }) => [urlOf(file), switched(file)])
    : past.filter((patch) => patch.name === name).map((patch) => [urlOf(patch.file), apply(patch)])
)

registerHooks({
  load: (url, context, nextLoad) => {
    const source = texts.get(url)
    return source === undefined ? nextLoad(url, context) : { ...nextLoad(url, context), source }
  }
})
