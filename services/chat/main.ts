/** Starts a worker of the chat workload. */
import * as Service from "../../shared/process/Service.ts"
import * as ChatService from "./ChatService.ts"

Service.run("chat", ChatService.layer)
