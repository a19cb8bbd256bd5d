/** The memory available to this process, in bytes: the container's limit or the machine's memory. */
import { totalmem } from "node:os"

// without a limit the system reports 0 or more than any machine has
export const memoryLimit = (): number => Math.min(process.constrainedMemory() || Infinity, totalmem())
