/** Public addresses of the console. */
import { Config, Option } from "effect"

/** Reads `CONSOLE_PUBLIC_URL`, the console's URL in browsers; required unless browsers use loopback. */
export const configured = Config.URL("CONSOLE_PUBLIC_URL").pipe(Config.option, Config.map(Option.toArray))

const loopback = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/

/** Whether a host is a loopback name. Unlike any other name, another site cannot take it over (DNS rebinding). */
export const isLoopback = (host: string): boolean => loopback.test(host)
