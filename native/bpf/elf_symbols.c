#define _GNU_SOURCE
#include "elf_symbols.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a table may have at most; a file that says more is not read. */
static const uint64_t MAX_TABLE_BYTES = UINT64_C(256) << 20;

typedef struct elf_file {
    int fd;
    Elf64_Phdr *segments;
    Elf64_Shdr *sections;
    uint32_t n_segments, n_sections;
} elf_file;

/* Memory that the caller frees; NULL where the file has not so much there. */
static void *read_part(int fd, uint64_t at, uint64_t n_bytes) {
    if (n_bytes == 0 || n_bytes > MAX_TABLE_BYTES || at > INT64_MAX - n_bytes) {
        return NULL;
    }
    char *part = malloc(n_bytes);
    for (uint64_t n_done = 0; part && n_done < n_bytes;) {
        ssize_t n_read = pread(fd, part + n_done, n_bytes - n_done, (off_t)(at + n_done));
        if (n_read <= 0) {
            free(part);
            return NULL;
        }
        n_done += (uint64_t)n_read;
    }
    return part;
}

static bool open_elf(int fd, elf_file *file) {
    Elf64_Ehdr header;
    if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_phentsize != sizeof(Elf64_Phdr) ||
        header.e_shentsize != sizeof(Elf64_Shdr)) {
        return false;
    }
    file->fd = fd;
    file->n_segments = header.e_phnum;
    file->n_sections = header.e_shnum;
    file->segments = read_part(fd, header.e_phoff, (uint64_t)header.e_phnum * sizeof(Elf64_Phdr));
    file->sections = read_part(fd, header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr));
    return file->segments && file->sections;
}

static uint64_t file_offset(const elf_file *file, uint64_t address) {
    for (uint32_t i = 0; i < file->n_segments; i++) {
        const Elf64_Phdr *segment = &file->segments[i];
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_X && address >= segment->p_vaddr &&
            address - segment->p_vaddr < segment->p_filesz) {
            return address - segment->p_vaddr + segment->p_offset;
        }
    }
    return 0;
}

static void look_up(const elf_file *file, const Elf64_Sym *symbol, const char *name, const char *const *names,
                    uint64_t *offsets, size_t n_names) {
    for (size_t i = 0; i < n_names; i++) {
        if (!offsets[i] && strcmp(name, names[i]) == 0) {
            offsets[i] = file_offset(file, symbol->st_value);
        }
    }
}

static void search_table(const elf_file *file, const Elf64_Shdr *table, const char *const *names, uint64_t *offsets,
                         size_t n_names) {
    if (table->sh_link >= file->n_sections) {
        return;
    }
    const Elf64_Shdr *strings = &file->sections[table->sh_link];
    Elf64_Sym *symbols = read_part(file->fd, table->sh_offset, table->sh_size);
    char *text = read_part(file->fd, strings->sh_offset, strings->sh_size);
    if (symbols && text && text[strings->sh_size - 1] == '\0') {
        for (uint64_t i = 0; i < table->sh_size / sizeof(*symbols); i++) {
            bool is_function = ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && symbols[i].st_shndx != SHN_UNDEF;
            if (is_function && symbols[i].st_name < strings->sh_size) {
                look_up(file, &symbols[i], text + symbols[i].st_name, names, offsets, n_names);
            }
        }
    }
    free(text);
    free(symbols);
}

bool ps_elf_offsets(int fd, const char *const *names, uint64_t *offsets, size_t n_names) {
    elf_file file = {0};
    bool is_read = open_elf(fd, &file);
    for (uint32_t i = 0; is_read && i < file.n_sections; i++) {
        if (file.sections[i].sh_type == SHT_DYNSYM || file.sections[i].sh_type == SHT_SYMTAB) {
            search_table(&file, &file.sections[i], names, offsets, n_names);
        }
    }
    free(file.segments);
    free(file.sections);
    return is_read;
}
