package dev.nereid.distribution.deploy;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.StreamSupport;

/**
 * An image in an unpacked archive, by its index. Immutable.
 *
 * @param directory the directory with the file {@code index.json}
 */
record OciLayout(Path directory) {
    /** Returns the description of the only image. */
    JsonObject image() throws IOException {
        JsonArray manifests = parse(directory.resolve("index.json")).getAsJsonArray("manifests");
        assertThat(manifests).hasSize(1);
        return manifests.get(0).getAsJsonObject();
    }

    /** Returns the manifest, which names the configuration and the layers. */
    JsonObject manifest() throws Exception {
        return parse(blob(image()));
    }

    /** Returns the configuration, which names the command. */
    JsonObject config() throws Exception {
        return parse(blob(manifest().getAsJsonObject("config")));
    }

    /** Unpacks the layers in order. */
    void unpackTo(Path root) throws Exception {
        for (JsonElement layer : manifest().getAsJsonArray("layers")) {
            Tool.succeed(root, "tar", "-xzf", blob(layer.getAsJsonObject()).toString());
        }
    }

    /** Finds what a descriptor describes, of the size and with the digest that it says. */
    Path blob(JsonObject descriptor) throws Exception {
        String digest = descriptor.get("digest").getAsString();
        Path blob = directory.resolve(path(descriptor));
        assertThat(Files.size(blob)).isEqualTo(descriptor.get("size").getAsLong());
        MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
        try (InputStream in = new DigestInputStream(Files.newInputStream(blob), sha256)) {
            in.transferTo(OutputStream.nullOutputStream());
        }
        assertThat("sha256:" + HexFormat.of().formatHex(sha256.digest())).isEqualTo(digest);
        return blob;
    }

    /** Returns where a descriptor's content is in the archive. */
    static String path(JsonObject descriptor) {
        return "blobs/" + descriptor.get("digest").getAsString().replace(':', '/');
    }

    static JsonObject parse(Path file) throws IOException {
        return JsonParser.parseString(Files.readString(file)).getAsJsonObject();
    }

    static List<String> strings(JsonArray array) {
        return StreamSupport.stream(array.spliterator(), false)
                .map(JsonElement::getAsString)
                .toList();
    }
}
