/** Under which addresses browsers know the console. */
import { Config, Option } from "effect"

/** Reads `CONSOLE_PUBLIC_URL`: where browsers reach the console, where that is not loopback. */
export const configured = Config.URL("CONSOLE_PUBLIC_URL").pipe(Config.option, Config.map(Option.toArray))
