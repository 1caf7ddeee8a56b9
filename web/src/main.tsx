import "./page.css";
import { render } from "preact";
import { Home } from "./home";
import { useConnected } from "./live";
import { MachinePage } from "./machine";
import { link, useRoute } from "./route";
import { RunPage } from "./run";

function Page() {
  const [what, name, ...rest] = useRoute();
  const connected = useConnected();
  return (
    <>
      <header>
        <a class="mark" href="#/">
          Berth
        </a>
        <nav aria-label="pages">
          <a href="#/" aria-current={what === undefined || what === "runs" ? "page" : undefined}>
            Runs
          </a>
          <a href={link("machine")} aria-current={what === "machine" ? "page" : undefined}>
            Machine
          </a>
        </nav>
        <span role="status" class="connection">
          {connected ? "" : "The server is away; what you see is how it was."}
        </span>
      </header>
      <main>
        {what === "runs" && name !== undefined ? (
          <RunPage key={name} run={name} task={rest[0]} />
        ) : what === "machine" ? (
          <MachinePage />
        ) : (
          <Home />
        )}
      </main>
    </>
  );
}

render(<Page />, document.getElementById("page")!);
