package dev.nereid.distribution.testing;

import dev.nereid.stepping.SteppingBackendProvider;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelStreamInferResponse;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.netty.NettyChannelBuilder;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/**
 * A client of a model of the backend {@code stepping}, for one request. It reads nothing until the test asks for all,
 * and the network holds little meanwhile. Confined to the test's thread.
 */
public interface Texts extends AutoCloseable {
    /** The start of the last text of a stream that fails, in front of the error. */
    String ERROR = "error: ";

    /** Reads to the end. Returns the numbers and labels of the texts, and the error as the last one. */
    List<String> readAll() throws Exception;

    /** Leaves. */
    @Override
    void close() throws IOException;

    /** Returns the configuration of a model. */
    static String model(String label, Path ends) {
        return """
                backend: "stepping"
                max_batch_size: 4
                model_transaction_policy { decoupled: true }
                sequence_batching {
                  iterative_sequence: true
                  oldest { max_candidate_sequences: 8 }
                  state { input_name: "AT" output_name: "NEXT" data_type: TYPE_INT32 dims: [ 1 ] }
                }
                input { name: "COUNT" data_type: TYPE_INT32 dims: [ 1 ] }
                output { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] }
                parameters { key: "label" value { string_value: "%s" } }
                parameters { key: "ends" value { string_value: "%s" } }
                """.formatted(label, ends);
    }

    /** Packs the backend into a plugin directory. */
    static Path pack(Path plugins) {
        return GatedPlugin.pack(plugins, SteppingBackendProvider.class);
    }

    /** Returns what {@link #readAll} has of a text that is complete. */
    static List<String> complete(int count, String label) {
        return IntStream.range(0, count).mapToObj(i -> i + label).toList();
    }

    /** Connects over gRPC, with a small window. */
    static ManagedChannel channel(String address) {
        return NettyChannelBuilder.forTarget(address)
                .usePlaintext()
                .directExecutor()
                .flowControlWindow(OverHttp.WINDOW)
                .build();
    }

    /** Sends a request on a gRPC stream. */
    static Texts overGrpc(ManagedChannel channel, int count) {
        return new OverGrpc(channel, count);
    }

    /** Sends a request to {@code generate_stream} on a connection of its own. */
    static Texts overHttp(int port, int count) throws IOException {
        return new OverHttp(port, count);
    }

    /** A gRPC stream. */
    final class OverGrpc extends ClientCall.Listener<ModelStreamInferResponse> implements Texts {
        private final ClientCall<ModelInferRequest, ModelStreamInferResponse> call;
        private final List<String> heads = new ArrayList<>();
        private final CompletableFuture<Status> end = new CompletableFuture<>();

        private OverGrpc(ManagedChannel channel, int count) {
            call = channel.newCall(GRPCInferenceServiceGrpc.getModelStreamInferMethod(), CallOptions.DEFAULT);
            call.start(this, new Metadata());
            call.sendMessage(ClientRequest.of("stepping")
                    .input("COUNT", "INT32", TensorBytes.ints(count), 1, 1)
                    .overGrpc());
            call.halfClose();
        }

        @Override
        public void onMessage(ModelStreamInferResponse message) {
            if (!message.getErrorMessage().isEmpty()) {
                heads.add(ERROR + message.getErrorMessage());
            } else if (message.getInferResponse().getRawOutputContentsCount() > 0) {
                String text = message.getInferResponse()
                        .getRawOutputContents(0)
                        .substring(Integer.BYTES)
                        .toStringUtf8();
                heads.add(text.substring(0, text.indexOf('.')));
            }
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            if (!status.isOk()) {
                heads.add(ERROR + status);
            }
            end.complete(status);
        }

        @Override
        public List<String> readAll() throws Exception {
            call.request(Integer.MAX_VALUE);
            end.get(OverHttp.TIMEOUT_SECONDS, TimeUnit.SECONDS);
            return heads;
        }

        @Override
        public void close() {
            call.cancel("the test leaves", null);
        }
    }

    /** A connection with events. */
    final class OverHttp implements Texts {
        private static final int WINDOW = 64 << 10;
        private static final int TIMEOUT_SECONDS = 60;

        private final Socket socket = new Socket();

        private OverHttp(int port, int count) throws IOException {
            socket.setReceiveBufferSize(WINDOW);
            socket.setSoTimeout((int) TimeUnit.SECONDS.toMillis(TIMEOUT_SECONDS));
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
            byte[] body = ("{\"COUNT\":" + count + "}").getBytes(StandardCharsets.UTF_8);
            socket.getOutputStream()
                    .write(HttpRequests.post("/v2/models/stepping/generate_stream", body, "Connection: close"));
        }

        @Override
        public List<String> readAll() throws IOException {
            BufferedReader lines =
                    new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            List<String> heads = new ArrayList<>();
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                int text = line.indexOf("\"TEXT\":\"");
                if (text >= 0) {
                    String from = line.substring(text + "\"TEXT\":\"".length());
                    heads.add(from.substring(0, from.indexOf('.')));
                } else if (line.contains("\"error\":")) {
                    heads.add(ERROR + line);
                }
            }
            return heads;
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }
}
