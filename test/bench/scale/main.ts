/**
 * `npm run bench:scale`: simulates 1,000 workers and 100,000 requests a second with measured costs. Writes
 * test/bench/results/scale.md.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { measure } from "./Costs.ts"
import { page } from "./Page.ts"

const text = page(await measure())
writeFileSync(join(import.meta.dirname, "../results/scale.md"), text)
console.log(text)
