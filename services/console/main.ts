/** Starts the console. */
import * as Service from "../../shared/process/Service.ts"
import * as Console from "./Console.ts"

Service.run("console", Console.layer)
