/** Public addresses of the console. */
import { Config, Option } from "effect"

/** Reads `CONSOLE_PUBLIC_URL`, the console's URL in browsers; needed unless they use loopback. */
export const configured = Config.URL("CONSOLE_PUBLIC_URL").pipe(Config.option, Config.map(Option.toArray))
