/** The name of this process's service, for telemetry and NATS. */
import { Context } from "effect"

export const ServiceName = Context.Reference<string>("shared/telemetry/ServiceName", { defaultValue: () => "gateway" })
