package dev.nereid.server.plugin;

import dev.nereid.server.plugin.boundary.PluginBoundary;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Fence;
import java.time.Duration;

/** Forwards to a plugin's fence through the plugin boundary. Immutable; safe for use by any thread. */
final class IsolatedFence implements Fence {
    private final Fence fence;
    private final PluginBoundary boundary;

    IsolatedFence(Fence fence, PluginBoundary boundary) {
        this.fence = fence;
        this.boundary = boundary;
    }

    @Override
    public boolean isDone() {
        try {
            return boundary.invoke("Fence.isDone", fence::isDone);
        } catch (BackendException e) {
            return true; // logged by the boundary; await reports failed work
        }
    }

    @Override
    public boolean await(Duration timeout) throws BackendException {
        return boundary.invoke("Fence.await", () -> fence.await(timeout));
    }

    @Override
    public long event() {
        try {
            return boundary.invoke("Fence.event", fence::event);
        } catch (BackendException e) { // without its event a device would not wait
            throw new IllegalStateException(e.getMessage(), e);
        }
    }
}
