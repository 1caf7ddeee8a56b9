import "./page.css";
import { Component, type ComponentChildren, render } from "preact";
import { ComparePage } from "./compare";
import { FleetPage } from "./fleet";
import { Home } from "./home";
import { useAway } from "./live";
import { MachinePage } from "./machine";
import { Trouble } from "./parts";
import { link, useRoute } from "./route";
import { RunPage } from "./run";
import { Known } from "./session";

/// Shows an error in place of a page that cannot be drawn; the header stays.
class Boundary extends Component<{ children: ComponentChildren }, { error: string | null }> {
  override state = { error: null };
  static override getDerivedStateFromError(error: unknown) {
    return { error: String(error) };
  }
  render() {
    if (this.state.error === null) return this.props.children;
    return (
      <>
        <h1>This page cannot be displayed</h1>
        <Trouble error={this.state.error} />
        <button onClick={() => this.setState({ error: null })}>Try again</button>
      </>
    );
  }
}

function Page() {
  const route = useRoute();
  const [what, name, ...rest] = route;
  return (
    <>
      <header>
        <a class="mark" href="#/">
          Berth
        </a>
        <nav aria-label="pages">
          <a href="#/" aria-current={what === undefined || what === "runs" || what === "compare" ? "page" : undefined}>
            Runs
          </a>
          <a href={link("machine")} aria-current={what === "machine" ? "page" : undefined}>
            Machines
          </a>
          <a href={link("fleets")} aria-current={what === "fleets" ? "page" : undefined}>
            Fleets
          </a>
        </nav>
        <span role="status" class="connection">
          {useAway()}
        </span>
      </header>
      <main>
        <Known>
        <Boundary key={`${what} ${name}`}>
          {what === "runs" && name !== undefined ? (
            <RunPage key={name} run={name} task={rest[0]} />
          ) : what === "compare" ? (
            <ComparePage names={route.slice(1)} />
          ) : what === "fleets" ? (
            <FleetPage number={Number(name ?? 0)} />
          ) : what === "machine" ? (
            <MachinePage />
          ) : (
            <Home />
          )}
        </Boundary>
        </Known>
      </main>
    </>
  );
}

render(<Page />, document.getElementById("page")!);
