package dev.nereid.scheduler.handle;

import dev.nereid.scheduler.memory.StackReserve;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Fence;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ResponseReport;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.ref.Reference;
import java.util.List;

/**
 * The plugin's handle of a sender. As safe for concurrent use as the sender.
 *
 * <p>The server refers to it only while a rescheduled request waits for its next execution, so that it notices when the
 * plugin has forgotten the sender. It is reachable as long as a response of it is reachable, or a tensor of the
 * response. It stays reachable until a call has returned: a plugin that drops a sender while it ends it has not
 * forgotten it.
 */
public final class SenderHandle implements ResponseSender {
    private final PluginHandles.EndableSender sender;
    private final Reachability reachability;
    private final PluginHandles.SenderEnd end;

    SenderHandle(PluginHandles.EndableSender sender, Reachability reachability, PluginHandles.SenderEnd end) {
        this.sender = sender;
        this.reachability = reachability;
        this.end = end;
    }

    /** Returns the reachability of the request's objects in the plugin, which ends after this handle. */
    public Reachability reachability() {
        return reachability;
    }

    /** Returns the response of the sender itself. */
    private static InferenceResponse own(InferenceResponse response) {
        return response instanceof ResponseHandle handle ? handle.response : response;
    }

    @Override
    public InferenceResponse newResponse() {
        InferenceResponse response = sender.newResponse();
        end.begun(sender);
        return new ResponseHandle(this, response);
    }

    @Override
    public void send(InferenceResponse response) {
        StackReserve.require();
        try {
            sender.send(own(response));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public void complete(InferenceResponse last) {
        StackReserve.require();
        try {
            sender.complete(own(last));
        } finally {
            end.ended(sender);
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public void sendError(BackendException error) {
        StackReserve.require();
        try {
            sender.sendError(error);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public void complete() {
        StackReserve.require();
        try {
            sender.complete();
        } finally {
            end.ended(sender);
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public void fail(BackendException error) {
        StackReserve.require();
        try {
            sender.fail(error);
        } finally {
            end.ended(sender);
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public void report(ResponseReport report) {
        sender.report(report);
    }

    @Override
    public boolean isCancelled() {
        return sender.isCancelled();
    }

    @Override
    public void releaseInputs() {
        sender.releaseInputs();
    }

    @Override
    public boolean isReady() {
        return sender.isReady();
    }

    @Override
    public void onReady(Runnable action) {
        try {
            sender.onReady(action);
        } finally {
            Reference.reachabilityFence(this); // until the action is registered, which may refer to it
        }
    }

    @Override
    public String toString() {
        return sender.toString();
    }

    /** A response of the sender, which keeps the sender reachable. Confined to one thread at a time. */
    private static final class ResponseHandle implements InferenceResponse {
        private final SenderHandle handle;
        private final InferenceResponse response;

        ResponseHandle(SenderHandle handle, InferenceResponse response) {
            this.handle = handle;
            this.response = response;
        }

        private Tensor view(Tensor tensor) {
            return handle.reachability.view(tensor);
        }

        @Override
        public Tensor allocate(String output, DataType type, Shape shape) {
            return view(response.allocate(output, type, shape));
        }

        @Override
        public Tensor allocate(String output, DataType type, Shape shape, MemoryPlace place) {
            return view(response.allocate(output, type, shape, place));
        }

        @Override
        public Tensor allocateBytes(String output, Shape shape, long byteSize) {
            return view(response.allocateBytes(output, shape, byteSize));
        }

        @Override
        public void fence(String output, Fence fence) {
            keep(() -> response.fence(output, fence));
        }

        @Override
        public void put(String output, Tensor tensor, Runnable release) {
            keep(() -> response.put(output, handle.reachability.withoutView(tensor), release));
        }

        @Override
        public void putFloats(String output, Shape shape, float... values) {
            keep(() -> response.putFloats(output, shape, values));
        }

        @Override
        public void putDoubles(String output, Shape shape, double... values) {
            keep(() -> response.putDoubles(output, shape, values));
        }

        @Override
        public void putInts(String output, Shape shape, int... values) {
            keep(() -> response.putInts(output, shape, values));
        }

        @Override
        public void putLongs(String output, Shape shape, long... values) {
            keep(() -> response.putLongs(output, shape, values));
        }

        @Override
        public void putStrings(String output, Shape shape, List<String> texts) {
            keep(() -> response.putStrings(output, shape, texts));
        }

        @Override
        public void putByteStrings(String output, Shape shape, List<byte[]> elements) {
            keep(() -> response.putByteStrings(output, shape, elements));
        }

        /** Runs a change of the response. The memory of the response stays meanwhile. */
        private void keep(Runnable change) {
            try {
                change.run();
            } finally {
                Reference.reachabilityFence(this);
            }
        }

        @Override
        public void parameter(String name, String value) {
            response.parameter(name, value);
        }

        @Override
        public void parameter(String name, long value) {
            response.parameter(name, value);
        }

        @Override
        public void parameter(String name, double value) {
            response.parameter(name, value);
        }

        @Override
        public void parameter(String name, boolean value) {
            response.parameter(name, value);
        }

        @Override
        public void discard() {
            keep(response::discard);
        }

        @Override
        public String toString() {
            return response.toString();
        }
    }
}
