package dev.nereid.benchmarks.load;

import io.grpc.Drainable;
import io.grpc.KnownLength;
import io.grpc.MethodDescriptor.Marshaller;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/** gRPC marshallers for serialized requests and unparsed responses, which keep client costs low. */
final class PreparedMessage extends ByteArrayInputStream implements KnownLength, Drainable {
    /** Sends bytes as they are. */
    static final Marshaller<byte[]> REQUEST = new Marshaller<>() {
        @Override
        public InputStream stream(byte[] message) {
            return new PreparedMessage(message);
        }

        @Override
        public byte[] parse(InputStream stream) {
            throw new UnsupportedOperationException("requests are only sent");
        }
    };

    /** Takes the size of a message, and leaves its bytes where they are. */
    static final Marshaller<Integer> RESPONSE_SIZE = new Marshaller<>() {
        @Override
        public InputStream stream(Integer size) {
            throw new UnsupportedOperationException("responses are only received");
        }

        @Override
        public Integer parse(InputStream stream) {
            try {
                // All of the message was received when it is parsed.
                return stream.available();
            } catch (IOException e) {
                throw new IllegalStateException("response: unreadable", e);
            }
        }
    };

    private PreparedMessage(byte[] message) {
        super(message);
    }

    @Override
    public int drainTo(OutputStream target) throws IOException {
        return (int) transferTo(target);
    }
}
