package dev.nereid.server;

import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.scheduler.time.Watchdog;
import dev.nereid.server.control.ModelLifecycle;
import dev.nereid.server.health.Health;

/**
 * Components of a running server. Owned by the server; {@link #close} ends all but the model lifecycle and the health.
 *
 * @param memory tensor pool and shared memory
 * @param plugins backends, response cache and remote repositories
 * @param lifecycle loads, serves and unloads models
 * @param timer runs timeouts
 * @param watchdog runs periodic checks on the timer
 * @param health fatal errors and heap
 */
record ServerComponents(
        ServerMemory memory,
        ServerPlugins plugins,
        ModelLifecycle lifecycle,
        TimerThread timer,
        Watchdog watchdog,
        Health health)
        implements AutoCloseable {
    /** Closes the components that models depend on. Called once, after the lifecycle has closed all models. */
    @Override
    public void close() {
        watchdog.close();
        timer.close();
        plugins.close();
        memory.close();
    }
}
