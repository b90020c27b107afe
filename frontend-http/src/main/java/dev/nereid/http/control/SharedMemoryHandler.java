package dev.nereid.http.control;

import dev.nereid.api.InferenceServer;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.http.body.BodyLimits;
import dev.nereid.http.body.ContentTypes;
import dev.nereid.http.body.EventLoopExecutor;
import dev.nereid.http.body.JsonBodyReceiver;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonWriter;
import io.vertx.core.Context;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** Handles shared memory requests: status, register and unregister. Confined to one event loop. */
public final class SharedMemoryHandler {
    private final InferenceServer server;
    private final SharedMemory memory;
    private final BodyLimits limits;
    private final EventLoopExecutor loop;

    /**
     * Creates the handler of one event loop.
     *
     * @param server who has the memory
     * @param limits the limits
     * @param context the event loop
     */
    public SharedMemoryHandler(InferenceServer server, BodyLimits limits, Context context) {
        this.server = server;
        this.memory = server.sharedMemory();
        this.limits = limits;
        this.loop = new EventLoopExecutor(context);
    }

    /** Waits for the body, and does what is asked. */
    public void handle(HttpServerRequest request, SharedMemoryPath path) {
        // Mapping memory, and above all its end, takes time.
        JsonBodyReceiver.receiveOnWorker(request, server, limits, loop, body -> {
            byte[] answer = process(path, body);
            HttpServerResponse response = request.response();
            return JsonBodyReceiver.Prepared.of(() -> response.putHeader(HttpHeaders.CONTENT_TYPE, ContentTypes.JSON)
                    .end(Buffer.buffer(answer)));
        });
    }

    private byte[] process(SharedMemoryPath path, MemorySegment body) {
        return switch (path.verb()) {
            case STATUS -> path.isCuda() ? cudaStatus(path.region()) : systemStatus(path.region());
            case REGISTER -> {
                register(path, body);
                yield new byte[0];
            }
            case UNREGISTER -> {
                unregister(path);
                yield new byte[0];
            }
        };
    }

    private byte[] systemStatus(String name) {
        List<SharedMemory.Region> regions = name.isEmpty() ? memory.regions() : List.of(memory.region(name));
        JsonWriter json = new JsonWriter().raw("[");
        for (int i = 0; i < regions.size(); i++) {
            SharedMemory.Region region = regions.get(i);
            json.raw(i == 0 ? "{\"name\":" : ",{\"name\":").string(region.name());
            json.raw(",\"key\":").string(region.key());
            json.raw(",\"offset\":").integer(region.offset());
            json.raw(",\"byte_size\":").integer(region.byteSize()).raw("}");
        }
        return json.raw("]").toByteArray();
    }

    private byte[] cudaStatus(String name) {
        List<SharedMemory.CudaRegion> regions =
                name.isEmpty() ? memory.cudaRegions() : List.of(memory.cudaRegion(name));
        JsonWriter json = new JsonWriter().raw("[");
        for (int i = 0; i < regions.size(); i++) {
            SharedMemory.CudaRegion region = regions.get(i);
            json.raw(i == 0 ? "{\"name\":" : ",{\"name\":").string(region.name());
            json.raw(",\"device_id\":").integer(region.deviceId());
            json.raw(",\"byte_size\":").integer(region.byteSize()).raw("}");
        }
        return json.raw("]").toByteArray();
    }

    private void register(SharedMemoryPath path, MemorySegment body) {
        memory.checkAllowed();
        if (path.region().isEmpty()) {
            throw JsonFields.invalid("'region name' is necessary to register " + (path.isCuda() ? "cuda" : "system")
                    + " shared memory region");
        }
        SharedMemoryRegisterRequest request = new SharedMemoryRegisterRequest(path.region(), body);
        if (path.isCuda()) {
            request.registerCuda(memory);
        } else {
            request.registerSystem(memory);
        }
    }

    private void unregister(SharedMemoryPath path) {
        boolean all = path.region().isEmpty();
        if (path.isCuda()) {
            if (all) {
                memory.unregisterAllCuda();
            } else {
                memory.unregisterCuda(path.region());
            }
        } else if (all) {
            memory.unregisterAll();
        } else {
            memory.unregister(path.region());
        }
    }
}
