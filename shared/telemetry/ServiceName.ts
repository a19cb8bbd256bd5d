/** Which service this process is: in its telemetry, and to NATS. */
import { Context } from "effect"

export const ServiceName = Context.Reference<string>("shared/telemetry/ServiceName", { defaultValue: () => "gateway" })
