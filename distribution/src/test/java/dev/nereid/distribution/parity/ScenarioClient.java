package dev.nereid.distribution.parity;

import java.io.IOException;

/** Asks scenarios over one protocol. Confined to the test's thread. */
interface ScenarioClient {
    /** Asks, and waits for what comes of it. */
    Outcome run(Scenario scenario) throws IOException, InterruptedException;

    /** Gives up the connection. */
    void end() throws IOException, InterruptedException;
}
