import sys; sys.path.insert(0,'/tmp/attackq')
from h import *
import zipfile, io, zlib
d='/tmp/attackq/hostile'; shutil.rmtree(d,ignore_errors=True); os.makedirs(d)
s=S(d+'/x.svcdb')
def mem(): return [(c[:10],int([l for l in open(f'/proc/{p}/status') if l.startswith('RssAnon')][0].split()[1])//1024,len(os.listdir(f'/proc/{p}/fd'))) for p,c in s.pids() if os.path.exists(f'/proc/{p}')]
F=[{'name':f'f{i}','type':'exact','source':[f'/k.*{i}.*x$/i']} for i in range(256)]
print('256 regex',s.put('/rx/.svc-config/indexes.json',{'glob':'**/*','indexes':F}))
doc=json.dumps({('k%d'%i)+'1'*200+'y':i for i in range(100000)}).encode(); print(len(doc))
t=time.time(); print('put',s.put('/rx/a.json',doc)[0],round(time.time()-t,2))
t=time.time(); r=s.query('/rx',{'field':'f1','op':'exists'}); print('q rx',r[0],str(r[1])[:250],round(time.time()-t,2))
t=time.time(); r=s.q('GET','/files/rx/a.json?x',raw=True); print('cheap get',round(time.time()-t,2))
small=json.dumps({('k%d'%i)+'1'*200+'y':i for i in range(250)}).encode()
t=time.time(); print('small put',[s.put(f'/rx/s{i}.json',small)[0] for i in range(10)],round(time.time()-t,2))
t=time.time(); r=s.query('/rx',{'field':'f1','op':'exists'}); print('q rx small',r[0],str(r[1])[:250],round(time.time()-t,2))
t=time.time(); r=s.query('/other',[]); print('other',r[0]); s.put('/o/x.txt',b'hello','text/plain'); t=time.time(); r=s.query('/o',{'field':'@filename','op':'eq','value':'x.txt'}); print('other dir',r[0],str(r[1])[:200],round(time.time()-t,2))
for _ in range(15):
    st=s.q('GET','/query/status')[1]; 
    if not st.get('waiting'): break
    time.sleep(2)
print('status',{k:st.get(k) for k in('waiting','jobs','failures','documents')},mem())
s.q('DELETE','/files/rx?recursive=true')
s.put('/p/.svc-config/indexes.json',{'glob':'**/*','indexes':[{'name':'text','type':['fulltext']},{'name':'title','type':'exact'},{'name':'deep','type':'exact','source':['']*32}]})
def bomb():
    b=io.BytesIO(); z=zipfile.ZipFile(b,'w',zipfile.ZIP_DEFLATED); z.writestr('[Content_Types].xml','<x/>'); z.writestr('word/document.xml',b'<w>'+b'a'*300_000_000); z.writestr('xl/workbook.xml',b'<a>'*50_000_000); z.close(); return b.getvalue()
bm=bomb(); lol=b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "lol">'+b''.join(b'<!ENTITY %c "%s">'%(98+i,(b'&%c;'%(97+i))*10) for i in range(9))+b']><l>&j;</l>'
rng=random.Random(3)
files={'b.docx':bm,'b.xlsx':bm,'b.odt':bm,'b.pptx':bm,'lol.xml':lol,'deep.xml':b'<a>'*2_000_000,'deep.json':b'['*5_000_000,'deepd.json':b'{"a":'*90+b'1'+b'}'*90,'wide.json':b'['+b'1,'*3_000_000+b'1]','g.pdf':b'%PDF-1.7\n'+rng.randbytes(2_000_000),'x.pdf':b'%PDF-1.7\n1 0 obj<</Length 99999999/Filter[/FlateDecode /FlateDecode /FlateDecode]>>stream\n'+zlib.compress(zlib.compress(zlib.compress(bytes(200_000_000))))+b'\nendstream\nendobj\ntrailer<</Root 1 0 R>>','a.html':b'<div>'*1_000_000,'q.yaml':b'a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f]\n','m.eml':b'Content-Type: multipart/mixed; boundary=a\n\n'+b'--a\nContent-Type: multipart/mixed; boundary=a\n\n'*100000,'t.csv':b','*3_000_000+b'\n1','t2.csv':b'"'*4_000_000,'r.rtf':b'{\\rtf1'+b'{'*2_000_000,'i.png':b'\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xff\xff\xff\xff\xff\xff\xff\x08\x06\x00\x00\x00','l.jsonl':b'{"a":1}\n'*1_000_000,'t.toml':b'a.'*1_000_000+b'b=1','big.json':b'{"n":'+b'9'*3_000_000+b'}','dup.json':b'{'+b','.join(b'"k":1' for _ in range(500000))+b'}','md.md':b'> '*500000+b'x','md2.md':b'['*300000,'u.txt':b'\xff\xfe'+rng.randbytes(1_000_001)}
for n,b in files.items():
    t=time.time(); r=s.q('PUT','/files/p/'+n,b,timeout=60); dt=time.time()-t
    print('put',n,len(b),r[0],round(dt,2)) if dt>1 or r[0]>=300 else 0
t=time.time(); r=s.query('/p',{'field':'text','op':'exists'},limit=100); print('q',r[0],str(r[1])[:200],round(time.time()-t,1))
t0=time.time(); worst=0
while time.time()-t0<150:
    t=time.time(); s.q('GET','/files/p/deepd.json'); worst=max(worst,time.time()-t)
    st=s.q('GET','/query/status')[1]
    if not st.get('waiting'): break
    time.sleep(.5)
print('all parsed after',round(time.time()-t0,1),'worst get',round(worst,2)); [print('  ',f['path'],{k:v for k,v in f.items() if k not in('path','at')}) for f in st['failures']]; print('waiting',st['waiting'],mem())
r=s.query('/p',{'field':'text','op':'exists'},limit=100); print('q',r[0],[x['path'] for x in r[1].get('results',[])])
# kill -9 while parsing: children left?
for i in range(6): s.q('PUT',f'/files/p/again{i}.docx',bm+bytes([i]))
time.sleep(2); before=s.pids(); print(before)
allp=subprocess.run(['ps','-eo','pid,ppid,pgid,sid,args'],capture_output=True,text=True).stdout
kids=[l for l in allp.splitlines() if str(s.p.pid) in l.split()[1:4] or any(l.split()[1]==str(p) for p,_ in before)]
for p,c in before:
    try: os.kill(p,9)
    except OSError: pass
    if p==s.p.pid: pass
time.sleep(4); allp=subprocess.run(['ps','-eo','pid,ppid,pgid,args'],capture_output=True,text=True).stdout
print('left after kill9',[l for l in allp.splitlines() if l.split()[0] in [k.split()[0] for k in kids]])
