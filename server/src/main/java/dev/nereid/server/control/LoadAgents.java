package dev.nereid.server.control;

import dev.nereid.plugin.agent.AgentChain;
import dev.nereid.server.lifecycle.Generation;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The repository agents of one load of a model, until its last generation is closed. Lock-free; safe for use by any
 * thread.
 *
 * <p>A thread that ends a use of the chain sees the effects of earlier threads, since all go through the same counts.
 */
final class LoadAgents {
    private final AgentChain chain;

    /** The load itself, and its generations that are not closed. */
    private final AtomicInteger uses = new AtomicInteger(1);

    /** The number of generations of the load that have not begun to close. */
    private final AtomicInteger serving = new AtomicInteger();

    private volatile boolean isLoaded;
    private volatile boolean isUnloading;

    /** Creates the agents of a load in progress, in use by it. They have been called before the load. */
    LoadAgents(AgentChain chain) {
        this.chain = chain;
    }

    /** Tells the agents that all versions were loaded. Called by the load, before they serve. */
    void loadComplete() {
        chain.loadComplete();
        isLoaded = true;
    }

    /**
     * Begins the use by a generation. Called by the load.
     *
     * @param release frees the other files of the generation's load
     * @return ends the use
     */
    Generation.Hooks use(Runnable release) {
        uses.incrementAndGet();
        serving.incrementAndGet();
        return new Generation.Hooks() {
            @Override
            public void beforeClose() {
                if (serving.decrementAndGet() == 0 && isLoaded) {
                    isUnloading = true;
                    chain.unload();
                }
            }

            @Override
            public void afterClose() {
                try {
                    LoadAgents.this.release();
                } finally {
                    release.run();
                }
            }
        };
    }

    /** Ends the use by the load, or by a generation. The last one tells the agents how it ended, and frees them. */
    void release() {
        if (uses.decrementAndGet() > 0) {
            return;
        }
        if (isLoaded) {
            if (!isUnloading) { // a load without generations: its versions all stay
                chain.unload();
            }
            chain.unloadComplete();
        } else {
            chain.loadFail();
        }
    }
}
