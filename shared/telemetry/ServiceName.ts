/** The name of the service that this process runs, for telemetry and NATS. */
import { Context } from "effect"

export const ServiceName = Context.Reference<string>("shared/telemetry/ServiceName", { defaultValue: () => "gateway" })
