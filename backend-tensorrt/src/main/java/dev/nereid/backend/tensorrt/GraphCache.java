package dev.nereid.backend.tensorrt;

import dev.nereid.cuda.CudaDriver;
import dev.nereid.cuda.GpuContext;
import dev.nereid.cuda.GpuException;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Shape;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/**
 * Executions that were captured as graphs, by what they depend on. Confined to the instance's thread.
 *
 * <p>An execution is captured when it occurs for the second time: TensorRT prepares itself at the first one. Where a
 * capture fails, and beyond a number of graphs, executions are enqueued as without this.
 */
final class GraphCache implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(GraphCache.class.getName());
    private static final int MAX_GRAPHS = 64;

    /** Seen once: to be captured the next time. */
    private static final long SEEN = 0;

    /** Cannot be captured. */
    private static final long NEVER = -1;

    private final GpuContext gpu;
    private final Map<Key, Long> graphs = new HashMap<>();

    /**
     * Key of a graph.
     *
     * @param profile the number of the optimization profile
     * @param buffers the number of the set of buffers: their addresses are part of the graph
     * @param shapes of the inputs, in the order of the engine
     */
    record Key(int profile, int buffers, List<Shape> shapes) {
        Key {
            shapes = List.copyOf(shapes);
        }
    }

    /** Work that is captured. */
    @FunctionalInterface
    interface Work {
        void enqueue();
    }

    GraphCache(GpuContext gpu) {
        this.gpu = gpu;
    }

    /** Returns the executable graph of an execution; empty for one that is enqueued. */
    OptionalLong find(Key key, long stream, Work work) {
        Long known = graphs.get(key);
        if (known == null) {
            if (graphs.size() < MAX_GRAPHS) {
                graphs.put(key, SEEN);
            }
            return OptionalLong.empty();
        }
        long graph = known;
        if (graph == SEEN) {
            graph = capture(stream, work);
            graphs.put(key, graph);
        }
        return graph == NEVER ? OptionalLong.empty() : OptionalLong.of(graph);
    }

    private long capture(long stream, Work work) {
        try {
            gpu.run(driver -> driver.beginCapture(stream));
            BackendException failure = null;
            try {
                work.enqueue();
            } catch (BackendException e) {
                failure = e;
            }
            long graph =
                    gpu.call(driver -> driver.endCapture(stream)); // in every case: the stream is usable afterwards
            if (failure != null || graph == 0) {
                if (graph != 0) {
                    gpu.release(driver -> driver.destroyGraph(graph));
                }
                LOG.log(
                        System.Logger.Level.WARNING,
                        "an execution cannot be captured as a graph, and is enqueued: {0}",
                        failure == null ? "a call spoiled the capture" : failure.getMessage());
                return NEVER;
            }
            try {
                return gpu.call((CudaDriver driver) -> driver.instantiate(graph));
            } finally {
                gpu.release(driver -> driver.destroyGraph(graph));
            }
        } catch (GpuException e) {
            LOG.log(
                    System.Logger.Level.WARNING,
                    "an execution cannot be captured as a graph, and is enqueued: {0}",
                    e.getMessage());
            return NEVER;
        }
    }

    @Override
    public void close() {
        for (long graph : graphs.values()) {
            if (graph != SEEN && graph != NEVER) {
                gpu.release(driver -> driver.destroyExecutable(graph));
            }
        }
        graphs.clear();
    }
}
