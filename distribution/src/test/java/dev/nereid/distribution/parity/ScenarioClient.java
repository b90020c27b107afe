package dev.nereid.distribution.parity;

import java.io.IOException;

/** Runs scenarios over one protocol. Confined to the test's thread. */
interface ScenarioClient {
    /** Runs a scenario, and waits for the outcome. */
    Outcome run(Scenario scenario) throws IOException, InterruptedException;

    /** Closes the connection. */
    void end() throws IOException, InterruptedException;
}
