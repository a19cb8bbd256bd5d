/** Entry point of the web app. */
import "@fontsource-variable/inter"
import "@mantine/core/styles.css"
import "@mantine/notifications/styles.css"
import "./console.css"
import { createRoot } from "react-dom/client"
import { App } from "./App.tsx"

const root = document.getElementById("root")
if (root !== null) createRoot(root).render(<App />)
